"""Chat templates in the manner of those that models are published with, one a family, and conversations for them; and templates of one construct each.
All of them are written for this file: the tokens are those of the models, the words are not."""

TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "The weather <now> & \"later\" in a city's centre",
                                      "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "its name"}, "days": {"type": "integer", "default": 1}},
                                                     "required": ["city"]}}},
    {"type": "function", "function": {"name": "noop", "description": "Nichts, für später", "parameters": {"type": "object", "properties": {}}}},
]

CONVERSATIONS = [
    [{"role": "user", "content": "hi"}],
    [{"role": "system", "content": " Be brief.\n"}, {"role": "user", "content": "  Größe? 日本 "}, {"role": "assistant", "content": "yo\n"}, {"role": "user", "content": "x"}],
    [{"role": "user", "content": "Weather?"},
     {"role": "assistant", "content": "", "tool_calls": [{"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Paris", "days": 2, "far": None}}}]},
     {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "12 °C"}, {"role": "tool", "tool_call_id": "call00001", "name": "noop", "content": "{}"},
     {"role": "assistant", "content": "It is 12."}, {"role": "user", "content": "Thanks"}],
    [{"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "image"}, {"type": "text", "text": "this?"}]}],
    [{"role": "user", "content": "Think"}, {"role": "assistant", "content": "<think>\nhm, 1 < 2\n</think>\n\nYes"}, {"role": "user", "content": "Again"},
     {"role": "assistant", "content": "No", "reasoning_content": "so\n"}],
    [{"role": "assistant", "content": "I begin"}, {"role": "assistant", "content": "and go on"}],
    [{"role": "system", "content": "only a system message"}],
]

FAMILIES = {
    "chatml": """{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}""",
    "smollm2": """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou help.<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}""",
    "llama2": """{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set first = messages[0]['content'] %}{% else %}{% set rest = messages %}{% set first = false %}{% endif %}{% for m in rest %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must take turns: user/assistant/...') }}{% endif %}{% if loop.index0 == 0 and first != false %}{% set text = '<<SYS>>\\n' + first + '\\n<</SYS>>\\n\\n' + m['content'] %}{% else %}{% set text = m['content'] %}{% endif %}{% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + text.strip() + ' [/INST]' }}{% elif m['role'] == 'assistant' %}{{ ' ' + text.strip() + ' ' + eos_token }}{% endif %}{% endfor %}""",
    "llama3": """{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}""",
    "llama3.1": """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools_in_user_message is defined %}
    {%- set tools_in_user_message = true %}
{%- endif %}
{%- if not date_string is defined %}
    {%- set date_string = "1 Jan 2025" %}
{%- endif %}

{#- The system message stands apart from the others. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}

{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if builtin_tools is defined or tools is not none %}
    {{- "Environment: shell\\n" }}
{%- endif %}
{%- if builtin_tools is defined %}
    {{- "Tools: " + builtin_tools | reject('equalto', 'interpreter') | join(", ") + "\\n\\n"}}
{%- endif %}
{{- "Date: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}

{%- if tools_in_user_message and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first_user_message = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("There is no first user message to put the tools into!") }}
    {%- endif %}
    {{- '<|start_header_id|>user<|end_header_id|>\\n\\n' -}}
    {{- "These functions are at hand. " }}
    {{- 'Answer {"name": a name, "parameters": its arguments}.\\n\\n' }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
    {{- first_user_message + "<|eot_id|>"}}
{%- endif %}

{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("One tool call at a time!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
    "mistral_v1": """{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must take turns') }}{% endif %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}{% else %}{{ raise_exception('Only user and assistant roles!') }}{% endif %}{% endfor %}""",
    "mixtral_system": """{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}

{{- bos_token }}
{%- for message in loop_messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Roles must take turns; found ' + message['role'] + ' at ' + loop.index|string) }}
    {%- endif %}
    {%- if message['role'] == 'user' %}
        {%- if loop.first and system_message is defined %}
            {{- ' [INST] ' + system_message + '\\n\\n' + message['content'] + ' [/INST]' }}
        {%- else %}
            {{- ' [INST] ' + message['content'] + ' [/INST]' }}
        {%- endif %}
    {%- elif message['role'] == 'assistant' %}
        {{- ' ' + message['content'] + eos_token}}
    {%- endif %}
{%- endfor %}
""",
    "mistral_v3_tools": """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}

{#- Users and assistants take turns, whatever the tools say between. #}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("Roles must take turns") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}

{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
            {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("Tool call ids have 9 characters!") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}
                {{- ", " }}
            {%- else %}
                {{- "]" + eos_token }}
            {%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS] {"content": ' + content|string + ", " }}
        {{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception("Unknown role: " ~ message["role"]) }}
    {%- endif %}
{%- endfor %}
""",
    "qwen2.5_tools": """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You are a careful assistant.' }}
    {%- endif %}
    {{- "\\n\\n# Tools\\n\\nSignatures stand in <tools></tools>:\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n\\nCalls go into <tool_call></tool_call>.<|im_end|>\\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou are a careful assistant.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}
            {{- '\\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
""",
    "qwen3_thinking": """{%- set ns = namespace(multi_step=true, last_query=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step = false %}
        {%- set ns.last_query = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if message.role == "user" or message.role == "system" %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query and (loop.last or (not loop.last and reasoning)) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if (loop.first and content) or (not loop.first) %}
                {{- '\\n' }}
            {%- endif %}
            {{- '<tool_call>\\n{"name": "' + tool_call.function.name + '", "arguments": ' }}
            {%- if tool_call.function.arguments is string %}
                {{- tool_call.function.arguments }}
            {%- else %}
                {{- tool_call.function.arguments | tojson }}
            {%- endif %}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or loop.previtem.role != "tool" %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' + content + '\\n</tool_response>' }}
        {%- if loop.last or loop.nextitem.role != "tool" %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}""",
    "gemma": """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('There is no system role') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must take turns') }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '
' + message['content'] | trim + '<end_of_turn>
' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model
'}}{% endif %}""",
    "gemma3": """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '

' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '

' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Roles must take turns") }}
    {%- endif -%}
    {%- set role = "model" if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '
' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Neither text nor parts") }}
    {%- endif -%}
    {{ '<end_of_turn>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model
'}}
{%- endif -%}
""",
    "deepseek_v2": """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}{{ 'User: ' + message['content'] + '

' }}{% elif message['role'] == 'assistant' %}{{ 'Assistant: ' + message['content'] + eos_token }}{% elif message['role'] == 'system' %}{{ message['content'] + '

' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}""",
    "deepseek_v3": """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='', is_first_sp=true) %}{%- for message in messages %}{%- if message['role'] == 'system' %}{%- if ns.is_first_sp %}{% set ns.system_prompt = ns.system_prompt + message['content'] %}{% set ns.is_first_sp = false %}{%- else %}{% set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}{{ bos_token }}{{ ns.system_prompt }}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<｜User｜>' ~ message['content']}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' in message %}{%- set ns.is_tool = false -%}{%- for tool in message['tool_calls'] %}{%- if not ns.is_first %}{{'<｜Assistant｜><｜calls｜>' + tool['type'] + '<｜sep｜>' + tool['function']['name'] + '\\n' + '```json' + '\\n' + tool['function']['arguments']|tojson + '\\n' + '```'}}{%- set ns.is_first = true -%}{%- else %}{{'\\n' + tool['function']['name']}}{%- endif %}{%- endfor %}{{'<｜end▁of▁sentence｜>'}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' not in message %}{%- set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>'}}{%- endif %}{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{%- if ns.is_output_first %}{{'<｜outputs｜>' + message['content']}}{%- set ns.is_output_first = false %}{%- else %}{{'\\n<｜output｜>' + message['content']}}{%- endif %}{%- endif %}{%- endfor -%}{% if ns.is_tool %}{{'<｜end｜>'}}{% endif %}{% if add_generation_prompt and not ns.is_tool %}{{'<｜Assistant｜>'}}{% endif %}""",
    "phi3": """{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}{{'<|system|>
' + message['content'] + '<|end|>
'}}{% elif message['role'] == 'user' %}{{'<|user|>
' + message['content'] + '<|end|>
'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>
' + message['content'] + '<|end|>
'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>
' }}{% else %}{{ eos_token }}{% endif %}""",
    "command_r": """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% elif false == true %}{% set loop_messages = messages %}{% set system_message = 'You are of use.' %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% if system_message != false %}{{ '<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>' + system_message + '<|END_OF_TURN_TOKEN|>' }}{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must take turns') }}{% endif %}{% set content = message['content'] %}{% if message['role'] == 'user' %}{{ '<|START_OF_TURN_TOKEN|><|USER_TOKEN|>' + content.strip() + '<|END_OF_TURN_TOKEN|>' }}{% elif message['role'] == 'assistant' %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' + content.strip() + '<|END_OF_TURN_TOKEN|>' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{% endif %}""",
    "command_r_tools": """{% macro document_turn(documents) -%}
<|USER_TOKEN|>{% for document in documents %}

Document: {{ loop.index0 }}
{% for key, value in document.items() %}
{{ key|title }}: {{ value }}{% if not loop.last %}

{% endif %}
{% endfor %}
{% endfor %}
{%- endmacro %}
{% macro python_type(spec, many=false) %}
{%- set names = {"string": "str", "integer": "int", "number": "float", "array": "List", "object": "Dict", "boolean": "bool"} %}
{%- if spec is none -%}
    {{- "Any" }}
{%- elif spec.type == "array" -%}
    {{- "List[" + python_type(spec['items']) + "]" }}
{%- elif spec.type is iterable and spec.type is not string -%}
    {{- "Union[" + spec.type | map('string') | join(',') + "]" }}
{%- else -%}
    {{- names.get(spec.type, 'Any') }}
{%- endif -%}
{%- if many %}...{% endif %}
{%- endmacro -%}
{%- macro signatures(tools) -%}
{%- for tool in tools %}
{%- set tool = tool.function %}
{{- "\\n```python\\ndef " + tool.name + "(" }}
{%- for name, spec in tool.parameters.properties.items() %}
{%- if name in tool.parameters.required %}
{{- name + ": " + python_type(spec) }}
{%- else %}
{{- name + ": Optional[" + python_type(spec, many=false) + "] = " + spec.default|default('None')|string }}
{%- endif %}
{%- if not loop.last %}, {% endif %}
{%- endfor %}
{{- ") -> List[Dict]:\\n    \\"\\"\\"" + tool.description + "\\"\\"\\"\\n    pass\\n```" }}
{%- endfor %}
{%- endmacro -%}
{{ bos_token }}{% if tools %}{{ signatures(tools) }}{% else %}{{ document_turn([{"title": "one", "text": "two"}]) }}{% endif %}
{% for message in messages|rejectattr('role', 'equalto', 'system') %}
<|{{ message.role|upper }}_TOKEN|>{{ message.content|string|trim }}
{% if message.tool_calls %}
{% for call in message.tool_calls %}
Action: {{ call.function.name }} {{ call.function.arguments|tojson(indent=4)|indent(4) }}
{% endfor %}
{% endif %}
{% endfor %}
""",
    "olmo2": """{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' %}{{ '<|system|>\n' + message['content'] + '\n' }}{% elif message['role'] == 'user' %}{{ '<|user|>\n' + message['content'] + '\n' }}{% elif message['role'] == 'assistant' %}{% if not loop.last %}{{ '<|assistant|>\n'  + message['content'] + eos_token + '\n' }}{% else %}{{ '<|assistant|>\n'  + message['content'] + eos_token }}{% endif %}{% endif %}{% if loop.last and add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}{% endfor %}""",
    "zephyr": """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>
'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}""",
    "granite": """{%- set tools = tools or [] %}
{%- if messages[0]['role'] == 'system' %}
 {%- set system_message = messages[0]['content'] %}
 {%- set loop_messages = messages[1:] %}
{%- else %}
 {%- set system_message = "You follow what you are told." %}
 {%- if tools and documents %}
  {%- set system_message = system_message + " With tools and documents." %}
 {%- elif tools %}
  {%- set system_message = system_message + " With tools." %}
 {%- endif %}
 {%- set loop_messages = messages %}
{%- endif %}
{{- '<|start_of_role|>system<|end_of_role|>' + system_message + '<|end_of_text|>
' }}
{%- if tools %}
 {{- '<|start_of_role|>tools<|end_of_role|>' }}
 {{- tools | tojson(indent=4) }}
 {{- '<|end_of_text|>
' }}
{%- endif %}
{%- for message in loop_messages %}
 {{- '<|start_of_role|>' + message['role'] + '<|end_of_role|>' + message['content'] + '<|end_of_text|>
' }}
 {%- if loop.last and add_generation_prompt %}
  {{- '<|start_of_role|>assistant' }}
  {%- if controls %}{{- ' ' + controls | tojson()}}{%- endif %}
  {{- '<|end_of_role|>' }}
 {%- endif %}
{%- endfor %}""",
    "generation_block": """{% for message in messages %}
  {%- if message.role == 'assistant' %}
<|assistant|>{% generation %}{{ message.content }}{{ eos_token }}{% endgeneration %}

  {%- else %}
<|{{ message.role }}|>{{ message.content }}
  {% endif %}
{% endfor %}""",
    "loop_controls": """{%- for message in messages %}
  {%- if message.role == 'tool' %}{% continue %}{% endif %}
  {%- if loop.index > 3 %}{{ '...' }}{% break %}{% endif %}
  {{- loop.cycle('>', '<') ~ message.role[0]|upper ~ loop.revindex ~ ': ' ~ (message.content if message.content is string else message.content|map(attribute='type')|join('+')) ~ '\n' }}
{%- else %}
nothing
{%- endfor %}""",
    "call_block": """{% macro turn(role, last=false) %}
[{{ role }}]{{ caller(role|length) }}[/{{ role }}]{{ '' if last else '\n' }}
{%- endmacro %}
{% for m in messages %}
{% call(n) turn(m.role, last=loop.last) %}{{ n }}:{{ m.content|string|replace('\n', '\\n') }}{% endcall %}
{% endfor %}
{% set foot %}
  end of {{ messages|length }}
{% endset %}
{{ foot|trim|upper }}""",
}

VALUES = {"n": 3, "x": 2.5, "s": " Ab c\n", "l": [3, 1, 2], "d": {"b": 1, "a": [True, None]}, "none_": None, "t": True, "e": [], "u": "Größe 日本 😀",
          "ms": [{"role": "user", "n": 2, "f": {"name": "g"}}, {"role": "assistant", "n": 1}, {"role": "user", "n": 3}], "q": "it's \"so\"", "lines": "a\n\nb\n"}

CONSTRUCTS = [(template, VALUES) for template in [
    # white space
    "a\n{% if true %}\nb\n{% endif %}\nc\n", "a\n    {% if true %}\n    b\n    {% endif %}\nc", "a {% if true %} b {% endif %} c", "x\n  {{ n }}\n  y", "x \n {{- n -}} \n y", "x\n  {%+ if t %}y{% endif +%}\nz",
    "x\n  {# c #}\ny", "x\n  {#- c -#}\ny", "x\n\n", "x\n", "\n", "\n\n", "", "{% raw %}{{ n }} {% if %}{% endraw %}", "a\n  {%- raw -%}  \n {{ x }} {% endraw %}\nb", "a{# {{ n }} #}b", "\r\na\rb\r\n", "{{ n }}\n\n{{ n }}\n",
    "  {% set y = 1 %}  {{ y }}", "{% if t -%}\n   a\n{%- endif %}", "\t{% if t %}\ta\n\t{% endif %}\t", "{{ '{{ n }}' }}", "{{ '%}' }}", "a{%- if t +%}\n b{%+ endif -%}\n c", "{#+ x +#}\ny", "x{{+ n }}",
    # printing
    "{{ n }} {{ x }} {{ t }} {{ none_ }} {{ l }} {{ d }} {{ missing }}", "{{ 1.0 }} {{ 1e16 }} {{ 1e-5 }} {{ 123456789.125 }} {{ 1e22 }} {{ 0.1 + 0.2 }} {{ -0.0 }} {{ 1e300 * 1e10 }}",
    "{{ q }} {{ [q] }} {{ ['a\\nb\\t\\\\', \"'\", '\\u00e9\\x07\\u200b'] }}", "{{ (1,) }} {{ () }} {{ (1, 'a') }} {{ {} }} {{ {'a': (1, [2])} }}", "{{ d.items() }} {{ d.keys() }} {{ d.values() }}", "{{ 1_000 }} {{ 0x1F }} {{ 0b11 }} {{ 0o17 }} {{ 1_0.5 }}",
    "{{ 'a' 'b' \"c\" }}", "{{ '\\x41\\u0042\\101\\d\\\"' }}", "{{ 'a\\\nb' }}", "{{ True }}{{ False }}{{ None }}{{ true }}{{ none }}",
    # arithmetic
    "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }}", "{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1e3 // 7 }} {{ -1 // 3.0 }}", "{{ 1 + 2 * 3 - 4 }} {{ (1 + 2) * 3 }} {{ 'a' * 3 }} {{ [0] * 2 }} {{ 2 * 'b' }}",
    "{{ 1 / 0 }}", "{{ 1 % 0 }}", "{{ 'a' + 1 }}", "{{ 1 + 'a' }}", "{{ l + e }} {{ 'a' + 'b' }} {{ (1,) + (2,) }}", "{{ [1] + (2,) }}", "{{ true + 1 }} {{ -true }} {{ +false }}", "{{ 'a' ~ 1 ~ none ~ 2.0 ~ [1] ~ missing }}", "{{ -s }}", "{{ n - x }} {{ n * x }}", "{{ '%s and %d' % ('a', 3) }} {{ '%05.1f|%-4s|%x' % (2.25, 'b', 255) }}",
    "{{ '%d' % 'a' }}", "{{ '%s' % (1, 2) }}",
    # comparison and logic
    "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ 1 == true }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 'é' > 'z' }}", "{{ 1 < 'a' }}", "{{ none < 1 }}", "{{ missing == missing }} {{ missing == none }} {{ missing < 1 }}", "{{ 1 in l }} {{ 9 not in l }} {{ 'b' in d }} {{ 'A' in s }} {{ '' in s }} {{ 1 in missing }}",
    "{{ 1 in 'a1' }}", "{{ 1 in n }}", "{{ t and n }} {{ e or 'x' }} {{ not e }} {{ not not n }} {{ none_ or missing or 0 }}|", "{{ 'a' if t else 'b' }}{{ 'a' if e }}{{ 'a' if e else 'b' if e else 'c' }}", "{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }} {{ (1,) == [1] }}",
    "{{ 1 if 0 else 2 if 1 else 3 }}", "{{ not 1 == 2 }} {{ not 1 in l }}",
    # lookups
    "{{ d.b }} {{ d['a'][0] }} {{ l[0] }} {{ l[-1] }} {{ l.0 }} {{ s[1] }} {{ u[2] }} {{ u[-1] }}", "{{ d.missing }}|{{ l[9] }}|{{ n.a }}|{{ none_.a }}", "{{ missing.a }}", "{{ missing[0] }}", "{{ d.missing.a }}", "{{ missing() }}", "{{ n() }}", "{{ d.items is callable }}",
    "{{ {'items': 5}['items'] }} {{ {'items': 5}.items is callable }} {{ {'x': 5}.x }}", "{{ l[1:] }} {{ l[:-1] }} {{ l[::-1] }} {{ l[::2] }} {{ u[2:7] }} {{ u[::-1] }} {{ l[5:] }} {{ l[-9:2] }} {{ (1, 2, 3)[1:] }}", "{{ l[::0] }}", "{{ n[1:] }}", "{{ l['a':] }}", "{{ l['0'] }}|{{ d[1] }}|{{ d[[1]] }}",
    "{{ s.__class__ }}|{{ d.__class__.x }}", "{{ range(5)[1:4]|list }} {{ range(3)[1] }}",
    # tests
    "{{ n is defined }} {{ missing is defined }} {{ missing is undefined }} {{ none_ is none }} {{ n is not none }} {{ d.zz is defined }}", "{{ s is string }} {{ d is mapping }} {{ l is iterable }} {{ s is iterable }} {{ n is iterable }} {{ l is sequence }} {{ d is sequence }} {{ s is sequence }}",
    "{{ n is number }} {{ x is number }} {{ t is number }} {{ n is integer }} {{ t is integer }} {{ x is float }} {{ t is boolean }} {{ n is boolean }} {{ t is true }} {{ n is true }} {{ e is false }}", "{{ n is odd }} {{ n is even }} {{ 6 is divisibleby 3 }} {{ n is equalto 3 }} {{ n is eq(4) }} {{ 2 is in l }} {{ n is gt 2 }} {{ 'A' is upper }} {{ 'a' is lower }}",
    "{{ none_ is sameas none }} {{ n is sameas 3 }} {{ true is sameas 1 }}", "{{ n is nothing }}", "{{ n is not string and t is boolean }}", "{{ d is mapping and not e }}", "{{ 'x' is odd }}",
    # filters
    "{{ s|trim }}|{{ s|upper }}|{{ s|lower }}|{{ s|title }}|{{ s|capitalize }}|{{ 'xxaxx'|trim('x') }}", "{{ 'hello wORLD-foo (bar) it\\'s'|title }} {{ 'hello wORLD-foo it\\'s'.title() }} {{ 'ǆ ß'|upper }} {{ 'ÀÉ'|lower }} {{ 'ßa'|capitalize }}", "{{ s|length }} {{ l|length }} {{ d|length }} {{ u|length }} {{ missing|length }} {{ l|count }}", "{{ n|length }}", "{{ none|length }}",
    "{{ l|join }} {{ l|join(', ') }} {{ ms|join('-', attribute='role') }} {{ 'abc'|join('.') }} {{ d|join(',') }}", "{{ n|join }}", "{{ l|first }} {{ l|last }} {{ e|first }} {{ 'abc'|last }} {{ d|first }}", "{{ l|sort }} {{ l|sort(reverse=true) }} {{ ['b', 'A', 'a']|sort }} {{ ['b', 'A', 'a']|sort(case_sensitive=true) }} {{ ms|sort(attribute='n')|map(attribute='n')|list }}",
    "{{ [1, 'a']|sort }}", "{{ l|sum }} {{ l|min }} {{ l|max }} {{ e|sum }} {{ e|max }} {{ ms|sum(attribute='n') }} {{ ms|sum(attribute='n', start=10) }}", "{{ l|reverse|list }} {{ 'abc'|reverse }} {{ [1, 1, 2, 'a', 'A']|unique|list }}", "{{ ms|map(attribute='role')|list }} {{ ms|map(attribute='f.name', default='?')|list }} {{ ['a']|map('upper')|list }} {{ l|map('string')|join }}",
    "{{ ms|selectattr('role', 'equalto', 'user')|list|length }} {{ ms|rejectattr('role', 'equalto', 'user')|map(attribute='n')|join }} {{ ms|selectattr('f')|list }} {{ ms|selectattr('f', 'defined')|list|length }}", "{{ [0, 1, '', 'a']|select|list }} {{ [0, 1]|reject|list }} {{ l|select('odd')|list }} {{ l|reject('in', [1])|list }} {{ l|select('gt', 1)|list }}",
    "{{ none_|map('upper')|list }} {{ 0|select|list }}", "{{ n|map('upper')|list }}", "{{ l|map('nothing')|list }}", "{{ missing|default('x') }} {{ none_|default('x') }} {{ none_|default('x', true) }} {{ e|d('y', boolean=true) }} {{ d.zz|default }}|", "{{ s|replace('b', 'c') }} {{ 'aaa'|replace('a', 'b', 2) }} {{ 'ab'|replace('', '-') }}",
    "{{ '3'|int }} {{ ' 12 '|int }} {{ '3.9'|int }} {{ 'a'|int }} {{ 'a'|int(7) }} {{ '1f'|int(base=16) }} {{ -3.9|int }} {{ t|int }} {{ none|int }}", "{{ '2.5'|float }} {{ 'a'|float }} {{ n|float }} {{ 'inf'|float }} {{ 'a'|float(1) }}", "{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ n|round }} {{ 2.1|round(0, 'ceil') }} {{ 2.19|round(1, 'floor') }} {{ 1234|round(-2) }} {{ -3|abs }} {{ -2.5|abs }}",
    "{{ n|string + 'x' }} {{ 'abc'|list }} {{ d|list }} {{ d|items|list }} {{ d|dictsort }} {{ {'b': 1, 'A': 2}|dictsort }} {{ {'b': 1, 'a': 2}|dictsort(by='value') }} {{ {'b': 1, 'a': 2}|dictsort(reverse=true) }}", "{{ lines|indent }}|{{ lines|indent(2, true) }}|{{ lines|indent('> ', blank=true) }}", "{{ '<a href=\"x\">\\'&'|escape }} {{ '<b>'|e }} {{ '<b>'|safe }}",
    "{{ n|nothing }}", "{{ '%s-%s'|format(1, 'b') }} {{ '%(k)s'|format(k=2) }}", "{{ s | trim | upper | replace('A', 'x') }}", "{{ -1|abs }} {{ 1 + 2|string|length }}",
    # JSON
    "{{ d|tojson }} {{ u|tojson }} {{ '<b>&\\'\"\\n\\x01\\x7f/'|tojson }} {{ x|tojson }} {{ 1.0|tojson }} {{ 1e22|tojson }}", "{{ ms|tojson(indent=2) }}", "{{ {'b': [], 'a': {}, 'c': [[1]]}|tojson(indent=4) }}", "{{ d|tojson(separators=(',', ':')) }} {{ d|tojson(sort_keys=true) }} {{ u|tojson(ensure_ascii=true) }} {{ l|tojson(indent='\\t') }}", "{{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }} {{ (1, 2)|tojson }}",
    "{{ missing|tojson }}", "{{ {(1, 2): 3}|tojson }}", "{{ range(3)|tojson }}",
    # methods
    "{{ ' a b '.strip() }}|{{ ' a'.lstrip() }}|{{ 'a '.rstrip() }}|{{ 'xax'.strip('x') }}|{{ '\\u3000a'.strip() }}", "{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a b c'.split(' ', 1) }} {{ 'a b c'.rsplit(' ', 1) }} {{ ' a b c '.split(none, 1) }} {{ ' a b c '.rsplit(none, 1) }}", "{{ 'a'.split('') }}", "{{ 'abc'.startswith('a') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'abc'.find('c') }} {{ 'abc'.find('x') }} {{ 'aXbX'.rfind('X') }} {{ 'aaa'.count('a') }}",
    "{{ 'abc'.index('x') }}", "{{ 'a-b'.replace('-', '+') }} {{ ', '.join(['a', 'b']) }} {{ 'a\\nb\\r\\nc'.splitlines() }} {{ 'abc'.upper().lower().title().capitalize() }}", "{{ ','.join(l) }}", "{{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.removeprefix('a').removesuffix('c') }} {{ '12'.isdigit() }}", "{{ '{} {}'.format(1, 'b') }} {{ '{1}{0}'.format('a', 'b') }} {{ '{k}'.format(k=3) }} {{ '{{}}'.format() }}",
    "{{ d.get('b') }} {{ d.get('z') }} {{ d.get('z', 9) }} {{ d.keys()|list }} {{ d.values()|list }} {{ d.items()|list }}", "{{ l.index(1) }} {{ l.count(3) }} {{ (1, 1).count(1) }}", "{{ l.append(4) }}", "{{ d.update({'x': 1}) }}", "{{ d.pop('b') }}", "{{ l.append }}|", "{{ 'a'.nothing() }}",
    # statements
    "{% for i in l %}{{ i }}{{ ',' if not loop.last }}{% endfor %}", "{% for i in e %}x{% else %}none{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in 'ab' %}[{{ c }}]{% endfor %}", "{% for i in l if i > 1 %}{{ loop.index }}/{{ loop.length }}:{{ i }} {% endfor %}",
    "{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }}{{ loop.changed(i > 1) }} {% endfor %}", "{% for i in n %}{% endfor %}", "{% for i in missing %}x{% endfor %}", "{% for a, b in l %}{% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for i in l %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}{% for i in l %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% else %}z{% endfor %}", "{% break %}", "{% set y = 1 %}{% for i in l %}{% set y = y + i %}{{ y }}{% endfor %}{{ y }}", "{% set ns = namespace(y=1) %}{% for i in l %}{% set ns.y = ns.y + i %}{% endfor %}{{ ns.y }}",
    "{% set ns = namespace(d, c=3) %}{{ ns.b }}{{ ns.c }}{{ ns.zz is defined }}", "{% set n.y = 1 %}", "{% set ns = namespace() %}{% set ns._x = 1 %}", "{% set a, b = 1, 'x' %}{{ a }}{{ b }}{% set a, b = b, a %}{{ a }}{{ b }}", "{% set a, b = l %}", "{% set block %}x {{ n }}\n{% endset %}[{{ block }}]{% set block2 | upper | trim %} y {% endset %}[{{ block2 }}]", "{% if n > 5 %}a{% elif n > 2 %}b{% else %}c{% endif %}{% if not t %}x{% endif %}",
    "{% if t %}{% set z = 1 %}{% endif %}{{ z }}", "{% with a = 1, b = n %}{{ a }}{{ b }}{% set c = 2 %}{{ c }}{% endwith %}{{ a }}{{ c }}", "{% filter upper %}a{{ s }}{% endfilter %}", "{% print n, 'x' %}", "{% macro m(a, b=2, c='x') %}{{ a }}-{{ b }}-{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, c=3) }}{{ m(b=4, a=5) }}{{ m() }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, k=3) }}{{ m(*l) }}{{ m(**{'q': 1}) }}", "{% macro m(i) %}{{ i }}{% if i > 0 %}{{ m(i - 1) }}{% endif %}{% endmacro %}{{ m(3) }}", "{% macro m(t) %}<{{ caller(t) }}>{% endmacro %}{% call(x) m('a') %}{{ x }}{{ n }}{% endcall %}", "{% macro m() %}{% set n = 9 %}{{ n }}{% endmacro %}{{ m() }}{{ n }}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}",
    "{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(3) }}", "{{ range(3)|list }} {{ range(1, 7, 2)|list }} {{ range(3, 0, -1)|list }}", "{{ range(1, 2, 0) }}", "{{ range(200000)|length }}", "{{ dict(a=1, **{'b': 2}) }} {{ dict([('x', 1)]) }}", "{{ raise_exception('stop ' ~ n) }}", "{% generation %}g{% set w = 1 %}{% endgeneration %}{{ w }}",
    "{% for i in l %}{% set s2 %}{{ i }}{% if i == 1 %}{% break %}{% endif %}{% endset %}{{ s2 }}{% endfor %}", "{{ strftime_now('x') }}", "{% set it = l|map('string') %}{{ it|first }}{{ it|list }}{{ it|list }}", "{{ 'yes' if l|selectattr('x') else 'no' }}", "{% set x = x + 1 %}{{ x }}",
    # errors of the source
    "{{ n", "{% if t %}", "{% if %}x{% endif %}", "{{ }}", "{% for x %}{% endfor %}", "{% endif %}", "{% nothing %}", "{{ n | }}", "{{ (1, }}", "{{ [1 }}", "{{ 'a }}", "{{ n ! }}", "{# x", "{% raw %}", "{{ 1 2 }}", "{% set 1 = 2 %}", "{% set true = 2 %}", "{{ a.1b }}", "{{ {1} }}", "{% macro m(a=1, b) %}{% endmacro %}", "{{ f(a=1, 2) }}",
    "{{ x is }}", "{% for a in b else %}{% endfor %}", "{{ '\\x4' }}", "{{ n ** }}", "{% if t %}a{% else %}b{% elif %}c{% endif %}", "{% call n %}{% endcall %}",
]]

_FORMAT = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}{{ m.reasoning_content }}{{ m.thinking }}{{ m.tool_calls }}{{ m|tojson }}\n{% endfor %}{{ tools }}{{ documents }}{{ add_generation_prompt }}{{ style }}"
CHATS = [
    {"template": _FORMAT, "messages": [{"role": "user", "content": "hi", "name": None}], "more": {"bos_token": "<s>"}, "add_generation_prompt": True},
    {"template": _FORMAT, "messages": [{"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": None}}]}], "more": {"style": "x"}, "add_generation_prompt": False},
    {"template": _FORMAT, "messages": [{"role": "assistant", "content": "a", "reasoning": "r"}], "more": {}, "add_generation_prompt": False},
    {"template": _FORMAT, "messages": [{"role": "assistant", "content": "a", "thinking": "t", "reasoning": "r"}], "more": {}, "add_generation_prompt": True},
    {"template": _FORMAT, "messages": [{"role": "user", "content": "a"}], "more": {"tools": TOOLS[:1]}, "add_generation_prompt": True},
    # One block tag a line, indented, and a last line that the generation prompt ends in its middle.
    {"template": "{% for m in messages %}\n    {% if m.role == 'user' %}\nU: {{ m.content }}\n    {% else %}\nA: {{ m.content }}\n    {% endif %}\n{% endfor %}\n{% if add_generation_prompt %}\nA:\n{%- endif %}\n",
     "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}, {"role": "user", "content": "x"}], "more": {}, "add_generation_prompt": True},
    {"template": "{% for m in messages %}\n    {% if m.role == 'user' %}\nU: {{ m.content }}\n    {% else %}\nA: {{ m.content }}\n    {% endif %}\n{% endfor %}\n{% if add_generation_prompt %}\nA:\n{%- endif %}\n",
     "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}, {"role": "user", "content": "x"}], "more": {}, "add_generation_prompt": False},
]

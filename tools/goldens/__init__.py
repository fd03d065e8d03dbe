"""The parts of tools/make_goldens.py."""

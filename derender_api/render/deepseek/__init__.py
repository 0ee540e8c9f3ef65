"""Prompts of DeepSeek V3.2, V4 and V4.1, which are written without a chat template."""

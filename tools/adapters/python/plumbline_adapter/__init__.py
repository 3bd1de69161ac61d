"""What the adapters of llamacpp/ and transformers/ share. Standard library only."""

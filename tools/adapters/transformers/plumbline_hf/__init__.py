"""What plumbline_transformers.py is made of. Only loading.py and capture.py need torch."""

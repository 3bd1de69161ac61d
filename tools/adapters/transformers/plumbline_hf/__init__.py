"""What plumbline_transformers.py is made of. Only loading.py and capture.py need torch."""

import os
import sys

# plumbline_dump.py, and what the adapters share.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

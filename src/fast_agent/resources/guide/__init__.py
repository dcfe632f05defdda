"""The guide: documents of a tree under `guide://`, by category, as its configuration says."""

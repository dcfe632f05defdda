"""Schema: kinds of fields, and what is made from them; cards and configuration differ by tables."""

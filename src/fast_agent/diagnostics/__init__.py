"""Problems with a place, a reason and a remedy: values, rules and renderers."""

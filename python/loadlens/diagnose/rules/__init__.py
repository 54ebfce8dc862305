"""The rules, one file each, by the kind of resource that they speak of."""

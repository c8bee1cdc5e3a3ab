"""Compared methods: one file each, one interface; what each certifies stands in its header."""

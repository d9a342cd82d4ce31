"""The bundled sample and the script that rebuilds it; not part of the wheel."""

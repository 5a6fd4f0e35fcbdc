"""The rules of Gluon's ops; `expressions` imports them with the others."""

"""The program clusterrun that this package came from, which runs the processes of pools."""

PATH = ""  # where it is not known

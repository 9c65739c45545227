"""What the measuring programs share."""
import os


def write(path, text):
    """A file that is there as a whole or not at all, whenever the program ends."""
    with open(path + ".partial", "w") as file:
        file.write(text)
    os.replace(path + ".partial", path)

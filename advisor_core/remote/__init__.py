"""Profiles at URLs that fsspec knows (``s3://``, ``hdfs://``, ``https://``): loaders read local paths, so each file
there has a stand-in here, and its content is copied when it is opened.

`listing` says what is at a URL, `stand_ins` lays that out as a folder, `copies` fetches the content of a file, and
`opened` is what a command does with it.
"""

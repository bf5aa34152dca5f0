package cli

// FirstFD is the number of the first file that a program can inherit in addition to its streams.
const FirstFD = 3

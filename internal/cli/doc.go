// Package cli is the command line: cobra commands that read flags and files, call the engine once or a few times, and
// print. Each command has a file of its own with a thin cobra part and a work function that has never heard of cobra.
//
// What a command was asked for goes to standard output and nothing else; everything about the way there, errors
// included, goes to standard error. Exit statuses are in exit.go.
package cli

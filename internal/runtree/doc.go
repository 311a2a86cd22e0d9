// Package runtree shows a run and its subworkflows as a tree of lines: what has been done, what goes on now and since when, and what
// is waited for. A Tree takes records, in the order of each run, and gives the lines of a terminal of some width and height. It reads
// nothing and knows no clock.
package runtree

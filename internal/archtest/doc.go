// Package archtest tests rules of the code base: the order in which the engine's packages import each other, that the core does no I/O, and
// that each package has a comment.
package archtest

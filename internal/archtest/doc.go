// Package archtest tests rules of the code base: the import order of the engine's packages, that the core does no
// I/O, and that each package has a comment.
package archtest

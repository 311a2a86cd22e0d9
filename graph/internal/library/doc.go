// Package library finds definitions: those registered with the engine, those that a Resolver knows, those stored beside the
// histories. It compiles each once, and remembers which workflows have turned out to be unknown, so that no run is claimed for
// one in vain.
package library

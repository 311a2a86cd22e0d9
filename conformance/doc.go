// Package conformance runs conformance vectors: data files that say what an engine of the protocol must do (spec:
// execution, 13). It drives the engine through its public API only, as an embedder does.
//
//	report, err := conformance.RunDir(ctx, "conformance", conformance.Options{})
//	if report.Status != conformance.Pass { … }
//
// A vector is a file <name>.vector.json, anywhere below the folder vectors/, and names a definition by a path relative
// to the folder that holds vectors/. There are four kinds: schema (is the definition accepted), replay (which commands
// follow a recorded history), parity (do all surfaces of the engine answer a script of calls alike) and signing.
//
// The package is strict, because a vector that checks less than it says is worse than none: an unknown member is a failure,
// and so are a profile that selects nothing and a folder without vectors.
//
// The vectors of this repository, in vectors/ and examples/ beside this file, cover what the protocol's own leave out.
package conformance

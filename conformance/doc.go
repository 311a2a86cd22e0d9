// Package conformance runs conformance vectors: data files that specify the behaviour of an engine of the protocol (spec: execution,
// 13). It drives the engine only through its public API, like an embedder.
//
//	report, err := conformance.RunDir(ctx, "conformance", conformance.Options{})
//	if report.Status != conformance.Pass { … }
//
// A vector is a file <name>.vector.json, anywhere below the folder vectors/. It names a definition by a path relative to the parent of
// vectors/. There are four kinds: schema (is the definition accepted), replay (which commands follow a recorded history), parity (do
// all surfaces of the engine answer a script of calls alike) and signing.
//
// The package is strict, so that a vector cannot check less than it claims: unknown fields, a profile that selects no vectors and a
// folder without vectors are failures.
//
// The vectors of this repository, in vectors/ and examples/ beside this file, cover cases that the protocol's own vectors omit.
package conformance

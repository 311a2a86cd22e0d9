// Package temporal runs workflow definitions inside Temporal. Each run is one Temporal workflow, "awp.run", whose code is the same machine
// that graph.Runner drives: activities and delegations are Temporal activities, subworkflows are child workflows, waits are Temporal timers,
// and answers, outcomes and signals are updates. Engine is the graph.Engine for callers, Worker performs the runs.
//
// The code of the workflow is deterministic because nothing but the machine runs between an input and the next yield. Temporal's event
// history is the truth about a run; the project's records are derived from it (Engine.History).
//
// Calls and definitions that need more than Temporal offers here are rejected with UNSUPPORTED_BY_BACKEND before anything happens.
package temporal

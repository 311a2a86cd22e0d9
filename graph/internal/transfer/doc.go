// Package transfer moves, forks and checks histories. Export and Import move runs between stores as files in the form of package
// runfile; a Fork begins a run with the past of another one; Replay and Inspect walk a definition with the recorded outcomes and
// compare the records that follow with the recorded ones.
package transfer

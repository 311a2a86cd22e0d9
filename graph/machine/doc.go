// Package machine walks one run of a workflow: it takes a compiled program and inputs, and returns records to append and
// effects to perform. It is pure: it opens nothing, starts no goroutine, reads no clock and draws no random number; time and
// ids are arguments. The protocol between a driver and a machine:
//
//	m, err := machine.Start(prog, cfg, input, now)  // or Replay, or Restore + Catchup
//	for {
//		b := m.Ready()               // 1. the result of the last input
//		append(b.Records)            // 2. one durable transaction; if it fails, discard m
//		perform(b.Effects)           // 3. only then act
//		err = m.Handle(input, now)   // 4. each response is the next input; an error means that nothing changed
//	}
//
// Rules. Call Ready before the next Handle. An input that does not fit (a late outcome, a timer that fired twice, a
// signal that no node waits for) is rejected with an error and leaves the machine unchanged; Check returns that error
// without taking the input. After the run has ended every input is rejected. The same program, input and sequence of inputs
// always produce the same batches.
//
// Commands are the script of a run, events are its facts. Nodes of the main path write both in the protocol's order. In a
// parallel block every live branch is a token of its own: its facts are written as they happen, but its script (commands,
// StateUpdated, checkpoints) is held back until the branches before it, in branch order, have ended. So the command stream
// of a join "all" does not depend on timing.
package machine

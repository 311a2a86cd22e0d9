// Package machine is the pure walker: it takes a compiled program and inputs, and yields records to append and effects
// to perform. It opens nothing, starts no goroutine, reads no clock and draws no random number; time and ids come in
// as arguments. The talk between a driver and a machine:
//
//	m, err := machine.Start(prog, cfg, input, now)  // or Replay, or Restore + Catchup
//	for {
//		b := m.Ready()               // 1. everything that came of the last input
//		append(b.Records)            // 2. one durable transaction, or stop here and throw m away
//		perform(b.Effects)           // 3. only now act
//		err = m.Handle(input, now)   // 4. each answer is the next input; an error changed nothing
//	}
//
// Rules. Drain Ready before the next Handle. An input that does not fit (a late outcome, a timer that fired twice, a
// signal nobody waits for) is refused with an error and leaves the machine exactly as it was; Check returns that error
// without taking the input. After the run has ended every input is refused. The same program, input and sequence of inputs always give the same batches.
//
// Commands are the script of a run, events are its facts. Main-path nodes write both in the protocol's order. Inside a
// parallel block every live branch is a token of its own: its facts are written the moment they happen, its script
// (commands, StateUpdated, checkpoints) is held back until the branches before it, in branch order, have ended. So the
// command stream of a join "all" does not depend on timing.
package machine

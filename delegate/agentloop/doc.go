// Package agentloop is the loop of an agent: it asks a model, has tools called and people asked, until there is an answer, a budget
// ends or is stopped. It is pure: it opens nothing, starts no goroutine, reads no clock and draws no random number. The protocol
// between a driver and a machine:
//
//	m, err := agentloop.New(config, task) // or Replay(steps, begun)
//	for {
//		b := m.Ready()               // 1. the outcome of the last input
//		record(b.Steps)              // 2. one durable commit; if it fails, discard m
//		perform(b.Effects)           // 3. only then act; stop the effects in b.Abandoned
//		err = m.Handle(input, now)   // 4. each response is the next input; an error means that nothing changed
//	}
//
// Rules. Call Ready before the next Handle, and record steps in the order of the batches. If a batch has Question or Rest, no effect is
// outstanding: the driver passes it to the engine, which records the steps question and answer, or rest and woken, itself. An
// input that does not fit (a late result, a second reply) is rejected and leaves the machine unchanged. After Done every input is rejected.
//
// Only steps change a machine: Handle turns an input into a step and applies it, Replay applies recorded ones, and both compute the
// consequences of a step in the same way. So the same steps make the same machine, with the same effects outstanding and byte-equal
// requests. Steps that follow from others (a refused call, the result of a sub-agent) are recorded too; if a process dies between the
// two, Replay returns them again as steps to record.
//
// Sub-agents are nested: their steps are in the same journal, with the key of the call as a prefix.
package agentloop

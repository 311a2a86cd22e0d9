package agentloop

// wording is the version of the texts for models: results, notes and repairs, and the form of conversations. It is recorded in the first
// step of each journal. Replay proves a journal of the same wording: each reply must answer the request that follows from the steps, and
// each step of the engine must be computed again. An agent with another wording continues with this one, without that proof: a new release
// does not end agents that wait for a person. A test fails if the texts change and this number does not.
const wording = 3

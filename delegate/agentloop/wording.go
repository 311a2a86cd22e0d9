package agentloop

// wording is the version of what the package says to models: the texts of results, notes and repairs, and the form of conversations. It
// stands in the first step of each journal. A journal of the same wording is proved as it is replayed: each reply must answer the request
// that follows from the steps, and each step of the engine must be the one that is made again. An agent that began with another wording
// goes on with this one, without that proof: a new release does not end agents that wait for a person. A test fails when the texts change
// and this number does not.
const wording = 2

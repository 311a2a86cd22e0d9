package historypg

const hintProject = "Repair it with Runner.Verify: it builds the projection from the records again."

// Package stepcommand performs step nodes with programs that the operator has configured, one for each handler: a way
// to write steps in any language.
//
//	commands, err := stepcommand.New(stepcommand.Config{
//		Commands: map[string]stepcommand.Command{
//			"urn:example:resize": {Command: "python3", Args: []string{"resize.py"}},
//		},
//		Environ: os.Environ(),
//	})
//	…
//	defer commands.Close()
//	err = commands.Register(steps) // an *activities.StepRegistry
//
// A program is started for each attempt. It gets the attempt as one JSON document on standard input and answers with one
// on standard output:
//
//	{"output": …}                          the node's output; an object becomes its delta
//	{"output": …, "usage": {…}}            usage is recorded beside the output
//	{"error": "no such image"}             the attempt has failed, with code HANDLER_ERROR
//	{"error": "…", "code": "NO_IMAGE", "retryable": false, "retry_after_ms": 5000}
//
// An empty output is {}. A program that ends with a status other than 0 has failed whatever it printed, with
// STEP_COMMAND_FAILED if it gave no error. It leads its own process group, gets little of the engine's environment,
// and is ended with all processes it started when the attempt times out, when the run is cancelled and at Close.
// Its standard error is logged, and its end is part of a failure's text; secrets are masked in both.
package stepcommand

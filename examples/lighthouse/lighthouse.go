// Package lighthouse holds the definition of the lighthouse example, for programs that run it.
package lighthouse

import _ "embed"

// Definition is lighthouse.workflow.json.
//
//go:embed lighthouse.workflow.json
var Definition []byte

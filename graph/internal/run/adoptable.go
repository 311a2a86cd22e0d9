package run

import "github.com/workflows-engine/workflows-engine/history"

// Adoptable reports whether a run was begun by another engine, which does not mark subworkflows with their parent.
func Adoptable(exec history.Execution) bool { return exec.Parent == "" && exec.InputHash == "" }

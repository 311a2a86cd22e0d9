//go:build !unix

package toolcall

import "os/exec"

// leadGroup does nothing: process groups are a matter of Unix.
func leadGroup(*exec.Cmd) {}

// terminateGroup and killGroup end the process itself; what it has started sees the end of its pipes.
func terminateGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
func killGroup(cmd *exec.Cmd)      { _ = cmd.Process.Kill() }

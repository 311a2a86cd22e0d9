//go:build !unix

package childprocess

import (
	"os/exec"
	"strconv"
)

// leadGroup does nothing: process groups are a matter of Unix.
func leadGroup(*exec.Cmd) {}

// terminateGroup and killGroup end the process with its children.
func terminateGroup(cmd *exec.Cmd) { killGroup(cmd) }

func killGroup(cmd *exec.Cmd) {
	// A missing program does not matter: the process itself is ended below.
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run()
	_ = cmd.Process.Kill()
}

// killRest does nothing: once its leader has ended, its descendants cannot be distinguished from other processes. It
// sees the end of its pipes.
func killRest(*exec.Cmd) {}

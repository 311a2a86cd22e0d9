//go:build unix

package childprocess

import (
	"os/exec"
	"syscall"
)

// leadGroup makes the process that cmd starts the leader of its own process group.
func leadGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminateGroup asks all processes of the group to end, killGroup ends them. An empty group is not an error.
func terminateGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
func killGroup(cmd *exec.Cmd)      { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// killRest ends the rest of the group of a process that has ended.
func killRest(cmd *exec.Cmd) { killGroup(cmd) }

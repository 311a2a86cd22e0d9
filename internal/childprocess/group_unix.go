//go:build unix

package childprocess

import (
	"os/exec"
	"syscall"
)

// leadGroup makes the process that cmd starts the head of a process group of its own.
func leadGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminateGroup asks all processes of the group to end, killGroup ends them. It is not an error if there are none left.
func terminateGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
func killGroup(cmd *exec.Cmd)      { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// killRest ends what a process that has ended leaves behind in its group.
func killRest(cmd *exec.Cmd) { killGroup(cmd) }

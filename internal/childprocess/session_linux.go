package childprocess

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// maxRounds bounds the rounds of killSession: a process that it finds may have started another one, and the
// environment of a starting process is visible only in the next round.
const maxRounds = 10

// killSession kills the processes with an entry in the environment that they were started with. It finds those that have left the
// process group, not those that have cleared their environment or changed their user.
func killSession(entry string) {
	for range maxRounds {
		if !killMarked(entry) {
			return
		}
	}
}

// killMarked kills the processes that have the entry, and reports whether it is to look again.
func killMarked(entry string) (again bool) {
	folder, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		marked, starting := hasEntry(name, entry)
		again = again || starting
		if !marked {
			continue
		}
		if p, err := os.FindProcess(pid); err == nil {
			if marked, _ := hasEntry(name, entry); marked { // p stands for this very process now, even if its number is used again
				again = p.Kill() == nil || again
			}
			_ = p.Release()
		}
	}
	return again
}

// hasEntry reports whether a process has an entry in its environment. The environment is empty while the process replaces its program,
// which starting reports, and once it has ended, when it has no program either.
func hasEntry(pid, entry string) (marked, starting bool) {
	environ, err := os.ReadFile("/proc/" + pid + "/environ")
	if err != nil {
		return false, false
	}
	if len(environ) == 0 {
		_, err = os.Readlink("/proc/" + pid + "/exe")
		return false, err == nil
	}
	return slices.Contains(strings.Split(string(environ), "\x00"), entry), false
}

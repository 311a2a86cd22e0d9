package childprocess

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// maxRounds bounds how often killSession looks again because it has found something, which may have started something else.
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

func killMarked(entry string) (found bool) {
	folder, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || !hasEntry(name, entry) {
			continue
		}
		if p, err := os.FindProcess(pid); err == nil {
			if hasEntry(name, entry) { // p stands for this very process now, even if its number is used again
				found = p.Kill() == nil || found
			}
			_ = p.Release()
		}
	}
	return found
}

// hasEntry reports whether a process has an entry in its environment. That of a process which has ended is empty.
func hasEntry(pid, entry string) bool {
	environ, err := os.ReadFile("/proc/" + pid + "/environ")
	return err == nil && slices.Contains(strings.Split(string(environ), "\x00"), entry)
}

// Package processid names processes of this machine so that others can tell whether they have ended.
package processid

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Own returns an id of this process: its number, the time when it started, and a hash that names the machine since its last boot and,
// on Linux, the namespaces that the number and the time belong to. It is "" where the system does not tell them (see Gone).
var Own = sync.OnceValue(func() string {
	machine := machine()
	if machine == "" {
		return ""
	}
	started, _ := started(os.Getpid())
	return fmt.Sprintf("p%d.%d.%s", os.Getpid(), started, machine)
})

// Gone reports whether a process has ended whose name is an id from Own, or ends in "/" and the id. It is false if that cannot be known: for a process of another machine or
// container, for any other name, and on systems other than Linux and macOS. Start times are known only on Linux: elsewhere, a process whose
// number has been given to another one counts as alive.
func Gone(name string) bool {
	id := name[strings.LastIndexByte(name, '/')+1:]
	number, rest, _ := strings.Cut(strings.TrimPrefix(id, "p"), ".")
	start, where, _ := strings.Cut(rest, ".")
	pid, err := strconv.Atoi(number)
	if err != nil || pid <= 0 || where == "" || where != machine() {
		return false
	}
	if !exists(pid) {
		return true
	}
	now, ended := started(pid)
	return ended || now != 0 && start != strconv.FormatUint(now, 10)
}

// hash returns a short name of a machine, "" if a part is unknown.
func hash(parts ...string) string {
	for _, part := range parts {
		if part == "" {
			return ""
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:6])
}

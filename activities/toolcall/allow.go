package toolcall

import (
	"path/filepath"
	"slices"
	"strings"
)

// Allowed reports whether a command may be started (spec: activities, 6.3). list is the operator's list of commands,
// separated by commas; an entry allows a command that equals it as a whole or by its base name. A blank list is empty,
// and then "node" and "npx" are allowed by base name. A list of nothing but commas allows nothing. The arguments do not
// count; a final ".exe" is not part of a base name.
func Allowed(command, list string) bool {
	command = strings.TrimSpace(command)
	if command == "" {
		return false
	}
	base := filepath.Base(command)
	if n := len(base) - len(".exe"); n > 0 && strings.EqualFold(base[n:], ".exe") {
		base = base[:n]
	}
	if strings.TrimSpace(list) == "" {
		return base == "node" || base == "npx"
	}
	return slices.ContainsFunc(strings.Split(list, ","), func(entry string) bool {
		entry = strings.TrimSpace(entry)
		return entry != "" && (entry == command || entry == base)
	})
}

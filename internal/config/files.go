package config

import (
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// maxSettingsBytes bounds a file with settings.
const maxSettingsBytes = 16 << 20

// readSettings reads a file with settings.
func readSettings(path string) ([]byte, error) { return regularfile.Read(path, maxSettingsBytes) }

// notes collects warnings about the files of the settings, each once.
type notes struct {
	mu    sync.Mutex
	taken []string
	list  []string
}

func (n *notes) add(format string, args ...any) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(n.list, text) && !slices.Contains(n.taken, text) {
		n.list = append(n.list, text)
	}
}

// take removes and returns the collected warnings.
func (n *notes) take() (list []string) {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	list, n.list = n.list, nil
	n.taken = append(n.taken, list...)
	return list
}

// read reads a file that a variable or flag names.
func (e Environment) read(path string) ([]byte, error) {
	text, err := e.ReadFile(path)
	if info, failed := os.Stat(path); err == nil && failed == nil {
		e.notePermissions(path, info, false)
	}
	return text, err
}

// notePermissions warns of a file that other users may change, or read if it holds secrets.
func (e Environment) notePermissions(path string, info fs.FileInfo, secret bool) {
	mode := info.Mode().Perm()
	switch {
	case e.GOOS == "windows": // it has other permissions
	case mode&0o002 != 0:
		e.notes.add("%s is writable by every user of this machine (mode %04o): chmod o-rw %s", path, mode, path)
	case secret && mode&0o004 != 0:
		e.notes.add("%s is readable by every user of this machine (mode %04o): chmod o-r %s", path, mode, path)
	}
}

// notePlain warns of a key that is sent in plain text, unless it stays on this machine or in a private network.
func (e Environment) notePlain(place, address string) {
	u, err := url.Parse(address)
	if err == nil && strings.EqualFold(u.Scheme, "http") && !private(u.Hostname()) {
		e.notes.add("%s: the key is sent in plain text to %s: use https", place, u.Host)
	}
}

// private reports whether a host is on this machine or, by its address or name, in a private network.
func private(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap()
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return !strings.Contains(host, ".") || slices.ContainsFunc([]string{".localhost", ".local", ".internal", ".lan", ".home.arpa"}, func(end string) bool {
		return strings.HasSuffix(host, end)
	})
}

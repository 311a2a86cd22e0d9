package config

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// PageAddress is where the page of a database is, so that links stay valid from one server to the next. It is kept in a file that only the
// user can read, because Key lets browsers in.
type PageAddress struct {
	// Name is the random host name below localhost. No other server of the machine has it, so browsers send the cookie to this server alone.
	Name string `json:"name"`
	// Host and Port are those of the last server.
	Host string `json:"host,omitempty"`
	Port int    `json:"port,omitempty"`
	// Key is that of the server that runs, in base64; "" while no server runs.
	Key string `json:"key,omitempty"`
}

// maxPageAddress limits the file, in bytes.
const maxPageAddress = 4 << 10

// PageFile returns the file with the address of the page of the database; "" for a store in memory.
func (c *Config) PageFile() string {
	if c.Store == Memory {
		return ""
	}
	return c.StorePath + ".page"
}

// PageOrigin returns the origin of the page that serves the database now, "" without one.
func (c *Config) PageOrigin(ctx context.Context) string {
	file := c.PageFile()
	if file == "" {
		return ""
	}
	if a := ReadPageAddress(file); a.Runs(ctx) {
		return a.Origin()
	}
	return ""
}

// ReadPageAddress reads a file. Without one, or with one that cannot be used, the address has a new name.
func ReadPageAddress(file string) PageAddress {
	var a PageAddress
	if text, err := regularfile.Read(file, maxPageAddress); err != nil || json.Unmarshal(text, &a) != nil || !IsLocalHost(a.Name) {
		a = PageAddress{}
	}
	if a.Name == "" {
		name := make([]byte, 10)
		_, _ = rand.Read(name) // never fails
		a.Name = "w" + strings.ToLower(base32.StdEncoding.EncodeToString(name)) + ".localhost"
	}
	return a
}

// Write writes the file.
func (a PageAddress) Write(file string) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	unlock, err := regularfile.Lock(file)
	if err != nil {
		return err
	}
	defer unlock()
	was, err := regularfile.Read(file, 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	change := regularfile.Replacement{Name: file, Was: was, Text: append(text, '\n'), Mode: 0o600}
	return change.ReplaceLocked()
}

// Origin returns the scheme, host and port of the page.
func (a PageAddress) Origin() string {
	return "http://" + net.JoinHostPort(a.Host, strconv.Itoa(a.Port))
}

// pagePatience limits the time in which a page that runs accepts a connection.
const pagePatience = time.Second

// Runs reports whether the server runs. One that was killed has left its key in the file, so its port is tried, too.
func (a PageAddress) Runs(ctx context.Context) bool {
	if _, ok := a.GetKey(); !ok || !IsLocalHost(a.Host) {
		return false
	}
	at := "127.0.0.1"
	if a.Host == "::1" {
		at = a.Host
	}
	ctx, cancel := context.WithTimeout(ctx, pagePatience)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(at, strconv.Itoa(a.Port)))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// SetKey notes the key of a server that starts; nil notes that it has stopped.
func (a *PageAddress) SetKey(k *[32]byte) {
	if a.Key = ""; k != nil {
		a.Key = base64.RawStdEncoding.EncodeToString(k[:])
	}
}

// GetKey returns the key of the server that runs. It reports false while no server runs.
func (a *PageAddress) GetKey() (k [32]byte, ok bool) {
	raw, err := base64.RawStdEncoding.DecodeString(a.Key)
	return k, err == nil && copy(k[:], raw) == len(k) && len(raw) == len(k)
}

// IsLocalHost reports whether a host name always leads to this machine: localhost, a name below it, 127.0.0.1 or ::1.
func IsLocalHost(host string) bool {
	if host == "127.0.0.1" || host == "::1" || host == "localhost" {
		return true
	}
	name, ok := strings.CutSuffix(host, ".localhost")
	return ok && name != "" && len(name) <= 63 && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-'
	}) && name[0] != '-' && name[len(name)-1] != '-'
}

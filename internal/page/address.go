package page

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// Address is where the page of a database is, so that links stay valid from one server to the next. It is kept in a file that only the user
// can read, because Key lets browsers in.
type Address struct {
	// Name is the random host name below localhost. No other server of the machine has it, so browsers send the cookie to this server alone.
	Name string `json:"name"`
	// Host and Port are those of the last server.
	Host string `json:"host,omitempty"`
	Port int    `json:"port,omitempty"`
	// Key is that of the server that runs, in base64; "" while no server runs.
	Key string `json:"key,omitempty"`
}

// maxAddress limits the file, in bytes.
const maxAddress = 4 << 10

// ReadAddress reads a file. Without one, or with one that cannot be used, the address has a new name.
func ReadAddress(file string) Address {
	var a Address
	if text, err := regularfile.Read(file, maxAddress); err != nil || json.Unmarshal(text, &a) != nil || !IsLocal(a.Name) {
		a = Address{}
	}
	if a.Name == "" {
		name := make([]byte, 10)
		_, _ = rand.Read(name) // never fails
		a.Name = "w" + strings.ToLower(base32.StdEncoding.EncodeToString(name)) + ".localhost"
	}
	return a
}

// Write writes the file.
func (a Address) Write(file string) error {
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

// SetKey notes the key of a server that starts; nil notes that it has stopped.
func (a *Address) SetKey(k *Key) {
	if a.Key = ""; k != nil {
		a.Key = base64.RawStdEncoding.EncodeToString(k[:])
	}
}

// GetKey returns the key of the server that runs. It reports false while no server runs.
func (a *Address) GetKey() (k Key, ok bool) {
	raw, err := base64.RawStdEncoding.DecodeString(a.Key)
	return k, err == nil && copy(k[:], raw) == len(k) && len(raw) == len(k)
}

// IsLocal reports whether a host name always leads to this machine: localhost, a name below it, 127.0.0.1 or ::1.
func IsLocal(host string) bool {
	if host == "127.0.0.1" || host == "::1" || host == "localhost" {
		return true
	}
	name, ok := strings.CutSuffix(host, ".localhost")
	return ok && name != "" && len(name) <= 63 && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-'
	}) && name[0] != '-' && name[len(name)-1] != '-'
}

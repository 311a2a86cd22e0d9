package config

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// maxSecretBytes bounds a file that a secret reference names.
const maxSecretBytes = 64 << 10

// secret resolves a reference (spec: cli-and-config, 13): env:NAME is a variable, file:path a file inside the working
// directory, symbolic links included. The value is trimmed and never blank. Errors name the reference, not the value.
func (e Environment) secret(reference string) (string, error) {
	value, err := e.resolve(reference)
	e.secrets.add(value)
	return value, err
}

func (e Environment) resolve(reference string) (string, error) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(reference), ":")
	rest = strings.TrimSpace(rest)
	if rest == "" {
		return "", problem.New(problem.UsageError, "secret reference %q must have a name", reference).
			WithHint("Write env:NAME or file:path.")
	}
	switch scheme {
	case "env":
		if value := e.lookup(rest); value != "" {
			return value, nil
		}
		return "", problem.New(problem.UsageError, "secret env:%s: the variable is unset or blank", rest).
			WithHint("Set %s where this program is started.", rest)
	case "file":
		return e.secretFile(rest)
	}
	return "", problem.New(problem.UsageError, "secret reference %q is not supported", reference).
		WithHint("Write env:NAME or file:path.")
}

func (e Environment) secretFile(path string) (string, error) {
	fail := func(err error) error {
		return problem.New(problem.UsageError, "cannot read secret file:%s", path).WithCause(err).
			WithHint("Write a path relative to the working directory, inside it.")
	}
	// A root rejects paths that lead outside: "..", absolute paths and links.
	root, err := os.OpenRoot(e.Directory)
	if err != nil {
		return "", fail(err)
	}
	defer root.Close()
	if filepath.IsAbs(path) {
		if path, err = filepath.Rel(e.Directory, path); err != nil {
			return "", fail(err)
		}
	}
	file, info, err := regularfile.OpenIn(root, filepath.Clean(path))
	if err != nil {
		return "", fail(err)
	}
	value, err := readSecret(file, maxSecretBytes)
	if err != nil {
		return "", fail(err)
	}
	e.notePermissions(path, info, true)
	if value == "" {
		return "", problem.New(problem.UsageError, "secret file:%s is empty", path)
	}
	return value, nil
}

// readSecret reads and closes a file that holds one, without white space around it.
func readSecret(file *os.File, most int64) (string, error) {
	defer file.Close()
	text, err := regularfile.ReadAll(file, most)
	return strings.TrimSpace(strings.TrimPrefix(string(text), "\ufeff")), err
}

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

func fleetFile(t *testing.T, name string) string {
	t.Helper()
	return string(enginetest.Must(os.ReadFile(filepath.Join("..", "..", "docs", "fleet", name))))
}

// TestThePictureOfTheFleet: the commands in the picture exist.
func TestThePictureOfTheFleet(t *testing.T) {
	t.Parallel()
	commands := regexp.MustCompile(`"workflows-engine ([^"]*)"`).FindAllStringSubmatch(pageBlock(t, "docs/scaling.md", "mermaid", ""), -1)
	if len(commands) < 3 {
		t.Fatalf("the picture has %d commands", len(commands))
	}
	for _, m := range commands {
		if err := checkCommand(strings.Fields(m[1])); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
}

// checkVariables rejects variables that have no effect.
func checkVariables(t *testing.T, file, text string) {
	t.Helper()
	known := string(enginetest.Must(os.ReadFile(filepath.Join("..", "config", "envname", "envname.go"))))
	found := regexp.MustCompile(envname.Prefix+`([A-Z_]+)`).FindAllStringSubmatch(text, -1)
	if len(found) < 2 {
		t.Errorf("%s sets %d variables", file, len(found))
	}
	for _, m := range found {
		if !strings.Contains(known, `Prefix + "`+m[1]+`"`) {
			t.Errorf("%s: unknown variable %s", file, m[0])
		}
	}
}

// TestComposeFile: the services of docs/fleet run commands that exist, with variables, secrets and volumes that exist.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	text := fleetFile(t, "compose.yaml")
	checkVariables(t, "compose.yaml", text)
	var file struct {
		Services map[string]struct {
			Command     []string
			Secrets     []string
			Volumes     []string
			Environment map[string]string
			DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
		}
		Secrets map[string]struct{ File string }
		Volumes map[string]any
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	for name, s := range file.Services {
		if name != "db" {
			if err := checkCommand(s.Command); err != nil {
				t.Errorf("%s: %q: %v", name, s.Command, err)
			}
			if s.Environment[envname.Store] != "postgres" || s.DependsOn["db"].Condition != "service_healthy" {
				t.Errorf("%s does not wait for the server or does not use it: %+v", name, s)
			}
		}
		for _, secret := range s.Secrets {
			if file.Secrets[secret].File == "" {
				t.Errorf("%s: unknown secret %q", name, secret)
			}
		}
		mentioned := strings.Join(s.Command, " ") + " " + s.Environment[envname.StoreURLFile] + " " + s.Environment["POSTGRES_PASSWORD_FILE"]
		for _, m := range regexp.MustCompile(`/run/secrets/(\S+)`).FindAllStringSubmatch(mentioned, -1) {
			if !strings.Contains(strings.Join(s.Secrets, " "), m[1]) {
				t.Errorf("%s does not have the secret %q", name, m[1])
			}
		}
	}
	if len(file.Services) != 3 {
		t.Errorf("%d services", len(file.Services))
	}
}

// TestUnitsOfTheFleet: the systemd units of docs/fleet start commands that exist, and are not started again after a wrong setting.
func TestUnitsOfTheFleet(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"workflows-engine-front.service", "workflows-engine-worker@.service"} {
		unit := fleetFile(t, name)
		checkVariables(t, name, unit)
		command := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/workflows-engine (.*)$`).FindStringSubmatch(unit)
		if command == nil {
			t.Fatalf("%s starts nothing", name)
		}
		if err := checkCommand(strings.Fields(command[1])); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(unit, "\nRestartPreventExitStatus=2\n") {
			t.Errorf("%s is started again after a wrong setting", name)
		}
		for _, m := range regexp.MustCompile(`(?:%d|\$\{CREDENTIALS_DIRECTORY\})/(\S+)`).FindAllStringSubmatch(unit, -1) {
			if !strings.Contains(unit, "\nLoadCredential="+m[1]+":") {
				t.Errorf("%s does not load the credential %s", name, m[1])
			}
		}
	}
}

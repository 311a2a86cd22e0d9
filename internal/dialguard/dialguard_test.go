package dialguard_test

import (
	"errors"
	"net/netip"
	"net/url"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/dialguard"
)

// Addresses that are not public are dialled only where a network has them.
func TestControl(t *testing.T) {
	t.Parallel()
	private := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("::1/128")}
	for address, dialled := range map[string]bool{
		"8.8.8.8:443": true, "[2606:4700::1]:443": true, "10.1.2.3:80": true, "[::1]:80": true, "[::ffff:10.1.2.3]:80": true,
		"10.2.0.1:80": false, "127.0.0.1:80": false, "169.254.169.254:80": false, "[fe80::1%eth0]:80": false, "[::ffff:127.0.0.1]:80": false,
		"0.0.0.0:80": false, "[64:ff9b::7f00:1]:80": false, "name:80": false,
	} {
		err := dialguard.Control(private)("tcp", address, nil)
		if _, refused := errors.AsType[*dialguard.Refusal](err); refused == dialled || (err == nil) != dialled {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestPlainPath(t *testing.T) {
	t.Parallel()
	for path, plain := range map[string]bool{
		"": true, "/": true, "/a/b": true, "/a/b/": true, "/a%20b": true, "/a..b": true, "/...": true,
		"/a/../b": false, "/a/..": false, "/./a": false, "//a": false, "/a//b": false, "/a%2fb": false, "/a%2Fb": false, "/%2e%2e/a": false,
		"/a%5cb": false, "/%252e": false, "/..;/a": false, "/.;x/a": false, "/;/a": false, "/;x=1/a": false, "/a;x=1/b": true,
	} {
		u, err := url.Parse("http://x" + path)
		if err != nil {
			t.Fatal(err)
		}
		if got := dialguard.PlainPath(u); got != plain {
			t.Errorf("%s: %t", path, got)
		}
	}
}

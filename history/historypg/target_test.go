package historypg_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historypg"
)

// Resolve names the place that a URL leads to, in each form that libpq has, and the hosts that the connection would not verify.
func TestResolve(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		url, where, password string
		unverified           []string
	}{
		{url: "postgres://kim:s3cret%2F@db.example.com/runs", where: "db.example.com:5432/runs, schema s", password: "s3cret/", unverified: []string{"db.example.com:5432"}},
		{url: "postgres://kim@db.example.com/runs?sslmode=verify-full&sslrootcert=system", where: "db.example.com:5432/runs, schema s"},
		{url: "postgres://kim@db.example.com/runs?sslmode=require", where: "db.example.com:5432/runs, schema s", unverified: []string{"db.example.com:5432"}},
		{url: "postgresql://kim@a.example.com:5433,b.example.com:5434/runs", where: "a.example.com:5433,b.example.com:5434/runs, schema s",
			unverified: []string{"a.example.com:5433", "b.example.com:5434"}},
		{url: "postgres://kim@[::1]:6000/runs", where: "[::1]:6000/runs, schema s"},
		{url: "postgres://kim@127.0.0.1/runs", where: "127.0.0.1:5432/runs, schema s"},
		{url: "host=/run/postgresql dbname=runs user=kim password='a b'", where: "/run/postgresql/runs, schema s", password: "a b"},
		{url: "postgres://kim:a%40b@db.example.com/runs?options=-cx.y%3Da@b", where: "db.example.com:5432/runs, schema s", password: "a@b",
			unverified: []string{"db.example.com:5432"}},
		{url: "host=localhost user=kim", where: "localhost:5432/, schema s"},
	} {
		got, err := historypg.Resolve(tt.url, historypg.Options{Schema: "s"})
		if err != nil || got.String() != tt.where || got.Password != tt.password || !slices.Equal(got.Unverified, tt.unverified) {
			t.Errorf("%s: %+v, %v", tt.url, got, err)
		}
	}
	for _, url := range []string{"postgres://kim:sentinel@[", "postgres://kim:sentinel@host:port/x", "host=db.example.com password=sentinel sslmode=maybe", "sentinel", "password='sentinel"} {
		_, err := historypg.Resolve(url, historypg.Options{})
		if !errors.Is(err, problem.UsageError) || strings.Contains(err.Error(), "sentinel") {
			t.Errorf("%s: %v", url, err)
		}
		if strings.Contains(url, "sslmode=disable") && strings.Contains(errors.Unwrap(err).Error(), "sslmode") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// Command dashboard checks Grafana dashboards against Grafana's own schema, strictly: an unknown field is an
// error, although Grafana ignores it.  For each query it prints the panel's title and the expression, separated by a tab.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// queries prints the queries of the panel, and fails if it has none.
func queries(p dashboard.Panel) error {
	title := "without a title"
	if p.Title != nil {
		title = *p.Title
	}
	if len(p.Targets) == 0 {
		return fmt.Errorf("panel %q has no query", title)
	}
	for _, target := range p.Targets {
		query, ok := target.(*prometheus.Dataquery)
		if !ok {
			return fmt.Errorf("panel %q asks something else than Prometheus: %T", title, target)
		}
		fmt.Printf("%s\t%s\n", title, query.Expr)
	}
	return nil
}

func check(file string) error {
	var whole dashboard.Dashboard
	var parts struct{ Panels []json.RawMessage }

	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := whole.UnmarshalJSONStrict(text); err != nil {
		return err
	}
	if err := whole.Validate(); err != nil {
		return err
	}
	// the schema is not strict about panels, which may be rows, nor about the fields that depend on a panel's type
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	for i, part := range parts.Panels {
		var panel dashboard.Panel
		var more struct{ FieldConfig json.RawMessage }
		var fields dashboard.FieldConfigSource
		if err := panel.UnmarshalJSONStrict(part); err != nil {
			return fmt.Errorf("panel %d: %w", i+1, err)
		}
		if err := json.Unmarshal(part, &more); err != nil {
			return err
		}
		if err := fields.UnmarshalJSONStrict(more.FieldConfig); err != nil {
			return fmt.Errorf("panel %d: fieldConfig: %w", i+1, err)
		}
		if err := queries(panel); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	plugins.RegisterDefaultPlugins()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dashboard FILE.json")
		os.Exit(2)
	}
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

package component

// Collector is a collector that says how a component is, whatever the scenario. Its fields are those of a scenario's
// collectors.
type Collector struct {
	Name, Kind string
	Every      string         // a duration; "" if the collector takes no snapshots at an interval
	Spec       map[string]any // JSON values; nil for the kind's defaults
	Kubelets   bool           // it needs nodes that have kubelets
}

// Collectors returns the collectors of a component that every scenario can do with. A workload, which is no component,
// is a row with nothing but a name: it has its log and its events.
func (c Component) Collectors() []Collector {
	list := func(names ...string) []any {
		var out []any
		for _, name := range names {
			if name != "" {
				out = append(out, name)
			}
		}
		return out
	}
	logs := Collector{
		Name: "logs",
		Kind: "componentLogs",
		Spec: map[string]any{"components": list(c.Name)},
	}
	events := Collector{Name: "events", Kind: "events"}
	if c.Runs == Nowhere {
		return []Collector{logs, events}
	}
	out := []Collector{{Name: "goroutines", Kind: "goroutines", Every: "30s"}}
	if len(c.Metrics) > 0 {
		out = append(
			out,
			Collector{
				Name: "metrics",
				Kind: "metrics",
				Spec: map[string]any{"families": list(c.Metrics...)},
			},
		)
	}
	if c.Runs == AsService {
		out = append(out, Collector{Name: "journal", Kind: "journal"})
	} else {
		out = append(out, logs)
	}
	if c.Runs == AsStaticPod {
		out = append(out, Collector{Name: "statuses", Kind: "containerStatuses",
			Spec: map[string]any{"components": list(c.Name)}})
	}
	return append(
		out,
		Collector{
			Name: "health",
			Kind: "health",
			Spec: map[string]any{"paths": list(c.Live, c.Ready)},
		},
		Collector{Name: "node", Kind: "nodeConditions", Kubelets: true},
		events,
	)
}

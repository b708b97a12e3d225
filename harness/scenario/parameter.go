package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

var types = []string{TypeInteger, TypeNumber, TypeDuration, TypeQuantity, TypeBoolean, TypeString}

var durations = regexp.MustCompile(DurationPattern)

// value returns the typed value of text, as JSON has it: int64, float64, bool or string. nil means that the parameter
// isn't set. The error completes a sentence that begins with the parameter's name.
func (p Parameter) value(text string) (any, error) {
	v, err := p.typed(text)
	if err != nil || v == nil {
		return v, err
	}
	if len(p.OneOf) > 0 && !slices.Contains(p.OneOf, Scalar(text)) {
		return nil, fmt.Errorf("%q is not one of its values %s", text,
			oneOf(text, each(p.OneOf, func(s Scalar) string { return string(s) })))
	}
	n, ordered := p.order(text)
	if p.Min != nil {
		if least, ok := p.order(string(*p.Min)); ok && ordered && n < least {
			return nil, fmt.Errorf("%s is too small (want at least %s)", text, *p.Min)
		}
	}
	if p.Max != nil {
		if most, ok := p.order(string(*p.Max)); ok && ordered && n > most {
			return nil, fmt.Errorf("%s is too large (want at most %s)", text, *p.Max)
		}
	}
	return v, nil
}

// typed is value without the checks of bounds and of allowed values.
func (p Parameter) typed(text string) (any, error) {
	if text == "" {
		switch p.Type {
		case TypeDuration, TypeQuantity, TypeString:
			return nil, nil
		}
	}
	switch p.Type {
	case TypeInteger:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, nil
		}
		return nil, fmt.Errorf("%q is no integer", text)
	case TypeNumber:
		if n, err := strconv.ParseFloat(text, 64); err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
			return n, nil
		}
		return nil, fmt.Errorf("%q is no number", text)
	case TypeBoolean:
		if text == "true" || text == "false" {
			return text == "true", nil
		}
		return nil, fmt.Errorf("%q is no boolean (want true or false)", text)
	case TypeDuration:
		if _, err := time.ParseDuration(text); err != nil || !durations.MatchString(text) {
			return nil, fmt.Errorf(
				"%q is no duration (want one with its unit: 250ms, 40s, 1m30s)",
				text,
			)
		}
	case TypeQuantity:
		if _, err := resource.ParseQuantity(text); err != nil {
			return nil, fmt.Errorf("%q is no quantity (want for example 512Mi)", text)
		}
	}
	return text, nil
}

// order returns a number by which values of the type compare. It returns false for types without an order and for an
// invalid value.
func (p Parameter) order(text string) (float64, bool) {
	v, err := p.typed(text)
	if err != nil || v == nil {
		return 0, false
	}
	switch p.Type {
	case TypeInteger:
		return float64(v.(int64)), true
	case TypeNumber:
		return v.(float64), true
	case TypeDuration:
		d, err := time.ParseDuration(text)
		return d.Seconds(), err == nil
	case TypeQuantity:
		q, err := resource.ParseQuantity(text)
		return q.AsApproximateFloat64(), err == nil
	}
	return 0, false
}

// isSet reports whether a parameter with this value implies others: the value is neither empty nor false.
func isSet(text string) bool { return text != "" && text != "false" }

// declared returns the parameters of a document, by index. A declaration that can't be understood has no Type; the
// schema and the rules complain about it.
func (d *document) declared() []Parameter {
	list, _ := lookup(d.value, []string{"spec", "parameters"}).([]any)
	out := make([]Parameter, len(list))
	for i, v := range list {
		name, _ := lookup(v, []string{"name"}).(string)
		raw, err := json.Marshal(v)
		if err != nil || json.Unmarshal(raw, &out[i]) != nil || !slices.Contains(types, out[i].Type) {
			out[i] = Parameter{}
		}
		out[i].Name = name
	}
	return out
}

// choose returns the value of every parameter as text: the given value, else an implied one, else the default. The
// error names two parameters that imply different values of a third.
func choose(ps []Parameter, given map[string]string) (map[string]string, error) {
	if len(ps) == 0 {
		return nil, nil
	}
	values, by := map[string]string{}, map[string]string{}
	for _, p := range ps {
		values[p.Name] = string(p.Default)
	}
	for _, p := range ps {
		if !isSet(given[p.Name]) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(p.Implies)) {
			implied := string(p.Implies[name])
			if _, set := given[name]; set {
				continue
			}
			if other, twice := by[name]; twice && values[name] != implied {
				return nil, fmt.Errorf(
					"%s implies %s %s and %s implies %s (want --set %s=… to decide)",
					other,
					name,
					values[name],
					p.Name,
					implied,
					name,
				)
			}
			values[name], by[name] = implied, p.Name
		}
	}
	maps.Copy(values, given)
	return values, nil
}

// unused complains about parameters that nothing refers to and that imply nothing. If a setting has replaced a
// parameter's only use, the parameter's value is not recorded, and setting it is an error.
func (d *document) unused(
	ps []Parameter,
	used map[string]bool,
	values, given map[string]string,
) error {
	for i, p := range ps {
		if used[p.Name] || len(p.Implies) > 0 || p.Name == "" {
			continue
		}
		_, set := given[p.Name]
		switch at := []string{"spec", "parameters", strconv.Itoa(i), "name"}; {
		case d.settings && set:
			return fmt.Errorf("setting %s: another setting replaces what it would change", p.Name)
		case d.settings:
			delete(values, p.Name)
		default:
			d.add(
				d.positionOfComplaint(at, complaint{}),
				at,
				"parameter %q is used nowhere (want $(%s) somewhere in spec)",
				p.Name,
				p.Name,
			)
		}
	}
	return nil
}

// parameters checks the declarations of parameters.
func (r *rules) parameters() {
	ps := r.s.Spec.Parameters
	r.unique("spec.parameters", "parameter", each(ps, func(p Parameter) string { return p.Name }))
	for i, p := range ps {
		at := func(rest ...string) []string { return append([]string{"spec", "parameters", strconv.Itoa(i)}, rest...) }
		if p.Type == "" || p.Name == "" {
			continue // the schema complains about it
		}
		if _, err := p.value(string(p.Default)); err != nil && p.Default == "" {
			r.violate(at("default"), "is missing (want the %s it has unless it is set)", p.Type)
		} else if err != nil {
			r.violate(at("default"), "%s", err)
		}
		for j, v := range p.OneOf {
			if _, err := p.typed(string(v)); err != nil {
				r.violate(at("oneOf", strconv.Itoa(j)), "%s", err)
			}
		}
		for name, bound := range map[string]*Scalar{"min": p.Min, "max": p.Max} {
			if bound == nil {
				continue
			}
			if _, err := p.typed(string(*bound)); err != nil {
				r.violate(at(name), "%s", err)
			} else if _, ok := p.order(string(*bound)); !ok {
				r.violate(at(name), "bounds a %s, which has no order (want oneOf)", p.Type)
			}
		}
		r.implied(at("implies"), p)
	}
}

func (r *rules) implied(path []string, p Parameter) {
	for _, name := range slices.Sorted(maps.Keys(p.Implies)) {
		i := slices.IndexFunc(
			r.s.Spec.Parameters,
			func(o Parameter) bool { return o.Name == name },
		)
		switch at := append(slices.Clip(path), name); {
		case name == p.Name:
			r.about(at, "is the parameter itself")
		case i < 0:
			r.about(at, "%q names no parameter %s", name,
				oneOf(name, slices.Sorted(slices.Values(named(r.s.Spec.Parameters)))))
		default:
			if _, err := r.s.Spec.Parameters[i].value(string(p.Implies[name])); err != nil {
				r.violate(at, "%s", err)
			}
		}
	}
}

func named(ps []Parameter) []string { return each(ps, func(p Parameter) string { return p.Name }) }

// unknownParameter returns an error for a name that is neither a parameter nor a field of spec. It lists the names that
// exist.
func unknownParameter(name string, ps []Parameter, fields []string) error {
	if len(ps) == 0 {
		first, _, _ := strings.Cut(name, ".")
		return fmt.Errorf(
			"spec has no field %q, and the scenario declares no parameters %s",
			first,
			oneOf(first, fields),
		)
	}
	known := named(ps)
	slices.Sort(known)
	return fmt.Errorf(
		"there is no such parameter, and no such field of spec %s",
		oneOf(name, known),
	)
}

package scenario

func (d *decoder) sources(m *member) map[string]string { return nil }

-- What the measured lua does: tables, closures, strings, patterns, coroutines, metatables, sorting, and a parser and
-- interpreter of a small language. Open it to change which features are measured. It draws its numbers itself, and
-- prints nothing that depends on the order of pairs() or on addresses.
local rounds = 12

local state = 11
local function below(limit)
  state = (state * 1103515245 + 12345) % 2147483648
  return (state // 256) % limit
end

local words = {}
for word in ("iron copper silver gold tin zinc lead nickel cobalt chrome carbon neon"):gmatch("%a+") do
  words[#words + 1] = word
end

local function sum_of(text)
  local sum = 0
  for i = 1, #text do
    sum = (sum * 31 + text:byte(i)) % 1000000007
  end
  return sum
end

-- Records in tables, grouped and sorted.
local function records()
  local groups, names = {}, {}
  for i = 1, 30000 do
    local name = words[below(#words) + 1] .. "-" .. below(500)
    if not groups[name] then
      groups[name] = {}
      names[#names + 1] = name
    end
    table.insert(groups[name], { id = i, price = below(9000) / 100, label = ("%05d/%s"):format(i, name) })
  end
  table.sort(names)
  local total = 0
  for _, name in ipairs(names) do
    local group = groups[name]
    table.sort(group, function(a, b)
      if a.price ~= b.price then return a.price < b.price end
      return a.id > b.id
    end)
    total = total + group[1].price * #group
  end
  return ("%d groups, %.2f, %s"):format(#names, total, groups[names[#names]][1].label)
end

-- Text: split, replaced, joined.
local function texts()
  local lines = {}
  for i = 1, 6000 do
    local line = {}
    for j = 1, below(9) + 2 do
      line[j] = words[below(#words) + 1]
    end
    lines[i] = table.concat(line, below(2) == 0 and " " or ", ") .. "."
  end
  local text = table.concat(lines, "\n")
  local counts, order = {}, {}
  for word in text:gmatch("%a+") do
    if not counts[word] then order[#order + 1] = word end
    counts[word] = (counts[word] or 0) + 1
  end
  table.sort(order)
  local changed = text:gsub("(%a+), (%a+)", "%2 <%1>"):gsub("%a+", function(word)
    if #word > 5 then return word:upper():reverse() end
  end)
  return ("%s %d, %d"):format(order[1], counts[order[1]], sum_of(changed))
end

-- Objects with inheritance, and closures that keep what they have seen.
local Shape = {}
Shape.__index = Shape
function Shape.new(x, y) return setmetatable({ x = x, y = y, trail = {} }, Shape) end
function Shape:move(dx, dy)
  self.x, self.y = self.x + dx, self.y + dy
  self.trail[#self.trail + 1] = { self.x, self.y }
end
local Circle = setmetatable({ __add = function(a, b) return a:area() + b:area() end }, { __index = Shape })
Circle.__index = Circle
function Circle.new(x, y, radius)
  local circle = setmetatable(Shape.new(x, y), Circle)
  circle.radius = radius
  return circle
end
function Circle:area() return self.radius * self.radius * 3 end

local function objects()
  local circles, actions = {}, {}
  for i = 1, 3000 do
    local circle = Circle.new(below(100), below(100), below(20))
    circles[i] = circle
    local seen = 0
    actions[i] = function(step)
      seen = seen + step
      circle:move(seen % 7, -step)
      return seen
    end
  end
  local total = 0
  for step = 1, 12 do
    for i = 1, #actions do
      total = total + actions[i](step)
    end
  end
  return ("%d, %d, %d"):format(total, circles[1] + circles[2], #circles[3000].trail)
end

-- Expressions, made as text, taken apart by a coroutine, parsed into a tree and evaluated.
local function tokens(text)
  return coroutine.wrap(function()
    for token in text:gmatch("%d+") do
      coroutine.yield(token)
    end
  end)
end

local function expression(depth)
  if depth == 0 then return tostring(below(90) + 1) end
  local operator = ({ "+", "-", "*" })[below(3) + 1]
  return "(" .. expression(depth - 1) .. operator .. expression(depth - 1) .. ")"
end

local function parse(text, from)
  if text:sub(from, from) ~= "(" then
    local digits = text:match("^%d+", from)
    return { value = tonumber(digits) }, from + #digits
  end
  local left, after = parse(text, from + 1)
  local right, last = parse(text, after + 1)
  return { operator = text:sub(after, after), left = left, right = right }, last + 1
end

local function evaluate(node)
  if node.value then return node.value end
  local left, right = evaluate(node.left), evaluate(node.right)
  if node.operator == "+" then return (left + right) % 65537 end
  if node.operator == "-" then return (left - right) % 65537 end
  return (left * right) % 65537
end

local function expressions()
  local total, numbers = 0, 0
  for _ = 1, 40 do
    local text = expression(8)
    total = total + evaluate((parse(text, 1)))
    for _ in tokens(text) do
      numbers = numbers + 1
    end
    local compiled = assert(load("return function(x) return x + " .. expression(4) .. " end"))()
    total = total + compiled(1) % 1000
  end
  return ("%d, %d"):format(total, numbers)
end

local kept = {} -- grows from round to round
for round = 1, rounds do
  kept[#kept + 1] = ("%d records: %s"):format(round, records())
  kept[#kept + 1] = ("%d texts: %s"):format(round, texts())
  kept[#kept + 1] = ("%d objects: %s"):format(round, objects())
  kept[#kept + 1] = ("%d expressions: %s"):format(round, expressions())
end
print(table.concat(kept, "\n"))
